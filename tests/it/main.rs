//! The one integration binary. What a module tests is said at its head; what it stands on is `cairn-tests`.

#[cfg(test)]
mod advice;
#[cfg(test)]
mod affected;
#[cfg(test)]
mod api_server;
#[cfg(test)]
mod architecture;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bad_packages;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod change_vnfpkg;
#[cfg(test)]
mod clusters;
#[cfg(test)]
mod contracts;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod notifications;
#[cfg(test)]
mod operations;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod rbac;
#[cfg(test)]
mod records;
#[cfg(test)]
mod repairs;
#[cfg(test)]
mod rollback;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod seed_a;
#[cfg(test)]
mod seed_b;
#[cfg(test)]
mod seed_c;
#[cfg(test)]
mod seed_d;
#[cfg(test)]
mod takeover;
#[cfg(test)]
mod walkthroughs;
#[cfg(test)]
mod windows;
