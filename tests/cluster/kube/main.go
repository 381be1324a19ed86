// Command kube is a whole Kubernetes in one binary: the test cluster is made of
// several processes of it, told apart by their first argument. The parts are
// linked from their published Go modules, so a machine that has nothing but
// package registries can run them.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	// The metrics of the client and the version, as in the published binaries.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = "usage: kube etcd|kube-apiserver|kube-controller-manager|kube-scheduler|kubelet [flags]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	part := os.Args[1]
	// The parts read os.Args themselves: each must find its own name in front of its flags.
	os.Args = append([]string{filepath.Join(filepath.Dir(os.Args[0]), part)}, os.Args[2:]...)
	if part == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command := commandOf(part)
	if command == nil {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}

// commandOf gives the command of a part, nil where there is none of that name.
func commandOf(part string) *cobra.Command {
	switch part {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	default:
		return nil
	}
}
