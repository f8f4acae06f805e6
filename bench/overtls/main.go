// Command overtls measures the processor's time of one read over HTTPS and the loopback, of
// this client, of net/http and encoding/json by hand, and of a TLS connection on which the
// same bytes are exchanged and not parsed. The server is another process. It prints the
// medians of rounds in which all take turns.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/bench/trust"
)

const (
	path = "/api/withdrawal/inquiry/w-1"
	body = `{"message":"Operation was successful.","result":{"status":"COMPLETED","destination":"TVx","amount":"12.5","fee":"1","coin":"USDT","network":"Tron","withdrawRequestId":"w-1"},"meta":{}}`
)

func main() {
	serve := flag.String("serve", "", "serve as a child `process`: HTTP/1.1 or HTTP/2")
	rounds := flag.Int("rounds", 11, "how often each takes its turn")
	calls := flag.Int("calls", 1000, "how many reads a turn has")
	profile := flag.String("profile", "", "a `file` for the profile of this client's turns")
	flag.Parse()
	if *serve != "" {
		respond(*serve == "HTTP/2")
		return
	}
	if err := measure(*rounds, *calls, *profile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// respond serves until its standard input ends, and prints its address and certificate.
func respond(http2 bool) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	s.EnableHTTP2, s.Config.ErrorLog = http2, log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_ = json.NewEncoder(os.Stdout).Encode(child{s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})})
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// A child is a server in another process.
type child struct {
	URL         string
	Certificate []byte
}

func startChild(version string) (c child, stop func(), err error) {
	command := exec.Command(os.Args[0], "-serve", version) // #nosec G204 -- this program
	input, err := command.StdinPipe()
	if err != nil {
		return c, nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return c, nil, err
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		return c, nil, err
	}
	stop = func() {
		_ = input.Close()
		_ = command.Wait()
	}
	return c, stop, json.NewDecoder(output).Decode(&c)
}

// A subject makes one read.
type subject struct {
	name, version string
	read          func() error
	times         []time.Duration // of the processor, for one read, by round
}

func measure(rounds, calls int, profile string) error {
	subjects, stop, err := start()
	defer stop()
	if err != nil {
		return err
	}
	for round := range rounds {
		for _, s := range subjects {
			if profile != "" && round == rounds-1 && s.name == ours && s.version == "HTTP/1.1" {
				err = errors.Join(err, profiled(profile, func() error { return s.turn(10 * calls) }))
				continue
			}
			err = errors.Join(err, s.turn(calls))
		}
		if err != nil {
			return err
		}
	}
	print(os.Stdout, subjects)
	return nil
}

const (
	ours   = "gateway"
	byHand = "net/http and encoding/json"
)

func start() (subjects []*subject, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	for _, version := range []string{"HTTP/1.1", "HTTP/2"} {
		c, end, err := startChild(version)
		if end != nil {
			stops = append(stops, end)
		}
		if err != nil {
			return nil, stop, err
		}
		forget, err := trust.PEM(c.Certificate)
		stops = append(stops, forget)
		if err != nil {
			return nil, stop, err
		}
		client, err := newClient(c.URL)
		if err != nil {
			return nil, stop, err
		}
		if version == "HTTP/1.1" {
			raw, err := newRaw(c)
			if err != nil {
				return nil, stop, err
			}
			subjects = append(subjects, &subject{name: "TLS, nothing parsed", version: version, read: raw})
		}
		subjects = append(subjects, &subject{name: byHand, version: version, read: newByHand(c)}, &subject{name: ours, version: version, read: client})
	}
	return subjects, stop, nil
}

func newClient(url string) (func() error, error) {
	client, err := gateway.New(url, "key-of-the-benchmark")
	if err != nil {
		return nil, err
	}
	return func() error {
		_, err := client.Withdrawal(context.Background(), "w-1")
		return err
	}, nil
}

func pool(c child) *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.Certificate)
	return roots
}

func newByHand(c child) func() error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(c)}, ForceAttemptHTTP2: true}}
	return func() error {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, c.URL+path, nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Api-Key", "key-of-the-benchmark")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		var envelope struct {
			Result struct {
				Status, Destination, Coin, Network, WithdrawRequestID string
				Amount, Fee                                           decimal.Decimal
			}
		}
		return errors.Join(json.NewDecoder(resp.Body).Decode(&envelope), resp.Body.Close())
	}
}

// newRaw sends the bytes of a request, and reads as many as the first response had.
func newRaw(c child) (func() error, error) {
	host := strings.TrimPrefix(c.URL, "https://")
	conn, err := tls.Dial("tcp", host, &tls.Config{RootCAs: pool(c), ServerName: "example.com"})
	if err != nil {
		return nil, err
	}
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nAccept: application/json\r\nUser-Agent: overtls\r\nX-Api-Key: key-of-the-benchmark\r\n\r\n")
	response, end := make([]byte, 4096), 0
	return func() error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		for at := 0; ; {
			n, err := conn.Read(response[at:])
			if at += n; err != nil {
				return err
			}
			if end == 0 && strings.HasSuffix(string(response[:at]), body) {
				end = at
			}
			if at == end {
				return nil
			}
		}
	}, nil
}

// turn makes reads and records what one takes of the processor.
func (s *subject) turn(calls int) error {
	if err := s.read(); err != nil { // with the handshake
		return fmt.Errorf("%s: %w", s.name, err)
	}
	before := processor()
	for range calls {
		if err := s.read(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	s.times = append(s.times, (processor()-before)/time.Duration(calls))
	return nil
}

// processor is the time that this process has taken of it.
func processor() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func profiled(name string, call func() error) error {
	file, err := os.Create(name) // #nosec G304 -- the user chooses it
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	err = call()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

func (s *subject) median() time.Duration {
	sorted := slices.Sorted(slices.Values(s.times))
	return sorted[len(sorted)/2]
}

func print(w io.Writer, subjects []*subject) {
	base := map[string]time.Duration{}
	for _, s := range subjects {
		if s.name == byHand {
			base[s.version] = s.median()
		}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "one read over HTTPS\tversion\tprocessor µs\tof net/http\t")
	for _, s := range subjects {
		fmt.Fprintf(table, "%s\t%s\t%.1f\t%.2f\t\n", s.name, s.version, float64(s.median())/1e3, float64(s.median())/float64(base[s.version]))
	}
	_ = table.Flush()
}
