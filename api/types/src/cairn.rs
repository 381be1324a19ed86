//! Shapes of our own API, `/cairn/v1`. They hold nothing that is computed at read time, so that two replicas
//! answer the same bytes.

mod delivery;
mod history;
mod instance;
mod op_occ;
mod vim;

pub use delivery::DeliveryDto;
pub use history::{EventDto, HistoryDto, event_data};
pub use instance::CairnVnfInstance;
pub use op_occ::CairnVnfLcmOpOcc;
pub use vim::VimDto;
