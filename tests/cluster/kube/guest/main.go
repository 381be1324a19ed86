// Command guest is what runs in the containers of the test cluster's images: one
// small program without dependencies that behaves as its first argument says. As
// first process of its container it must ask for SIGTERM, or the kernel drops it
// and every deletion takes the whole grace period.
package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	address = ":8080"
	// Long enough to be seen as not ready, short enough to wait for.
	lateBy = 5 * time.Second
	// Where kubelet looks for the last words of a container.
	terminationLog = "/dev/termination-log"
)

func main() {
	behaviour := "pause"
	if len(os.Args) > 1 {
		behaviour = os.Args[1]
	}
	switch behaviour {
	case "pause":
		untilTerminated()
	case "web":
		go serve(time.Now())
		untilTerminated()
	case "late":
		go serve(time.Now().Add(lateBy))
		untilTerminated()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		serve(time.Now())
	case "crash":
		end("crash: refuses to run\n", 1)
	case "job":
		end("job: done\n", 0)
	default:
		end("unknown behaviour "+behaviour+"\n", 2)
	}
}

func untilTerminated() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	<-signals
}

// serve answers every path with the version in the image, and with 503 until ready.
func serve(ready time.Time) {
	handler := func(answer http.ResponseWriter, _ *http.Request) {
		if time.Now().Before(ready) {
			http.Error(answer, "not ready yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(answer, "version %s\n", os.Getenv("IMAGE_VERSION"))
	}
	server := http.Server{
		Addr:              address,
		Handler:           http.HandlerFunc(handler),
		ReadHeaderTimeout: 5 * time.Second,
	}
	end(server.ListenAndServe().Error()+"\n", 1)
}

func end(words string, code int) {
	fmt.Print(words)
	// Outside a pod there is no such file, and the words are on standard output anyway.
	if err := os.WriteFile(terminationLog, []byte(words), 0o644); err != nil && !os.IsNotExist(err) {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}
