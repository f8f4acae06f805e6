package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A proxy is a program of Debian's and its configuration, in which DIR, PORT, ONE, TWO and EXTRA are
// replaced: a directory of its own, where it listens, two addresses of one gateway, and what is special.
type proxy struct {
	name    string
	forward bool     // the client names it as its proxy
	command []string // empty for none
	config  string
	extra   string
}

var (
	nginx   = []string{"nginx", "-e", "DIR/log", "-c", "DIR/config"}
	haproxy = []string{"haproxy", "-db", "-q", "-f", "DIR/config"}
	apache  = []string{"apache2", "-D", "FOREGROUND", "-d", "DIR", "-f", "DIR/config"}
	caddy   = []string{"caddy", "run", "--adapter", "caddyfile", "--config", "DIR/config"}
	varnish = []string{"varnishd", "-F", "-n", "DIR", "-a", "127.0.0.1:PORT", "-b", "ONE", "-s", "malloc,16m", "-p", "first_byte_timeout=1"}
	squid   = []string{"squid", "-N", "-f", "DIR/config"}
)

var proxies = []proxy{
	{name: "nothing"},
	{name: "nginx", command: nginx, config: nginxConfig},
	{name: "nginx with connections that are kept", command: nginx, config: nginxConfig, extra: `proxy_http_version 1.1; proxy_set_header Connection "";`},
	{name: "nginx with `proxy_next_upstream … http_500 http_502 http_503 http_504`", command: nginx, config: nginxConfig, extra: `proxy_next_upstream error timeout http_500 http_502 http_503 http_504;`},
	{name: "HAProxy", command: haproxy, config: haproxyConfig},
	{name: "HAProxy with `option redispatch`", command: haproxy, config: haproxyConfig, extra: "option redispatch"},
	{name: "Apache", command: apache, config: apacheConfig},
	{name: "Apache with `failonstatus`", command: apache, config: apacheConfig, extra: "ProxySet failonstatus=500,502,503,504"},
	{name: "Caddy", command: caddy, config: caddyConfig},
	{name: "Caddy with `lb_try_duration`", command: caddy, config: caddyConfig, extra: "lb_try_duration 2s"},
	{name: "Varnish", command: varnish},
	{name: "Squid as forward proxy", forward: true, command: squid, config: squidConfig},
	{name: "nginx with `proxy_next_upstream … non_idempotent`", command: nginx, config: nginxConfig, extra: `proxy_next_upstream error timeout http_500 http_502 http_503 http_504 non_idempotent;`},
	{name: "HAProxy with `retry-on all-retryable-errors` and `option http-buffer-request`", command: haproxy, config: haproxyConfig, extra: "retry-on all-retryable-errors\n\toption http-buffer-request"},
}

const (
	nginxConfig = `daemon off; worker_processes 1; pid DIR/pid;
events {}
http {
	access_log off;
	client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi; uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
	upstream gateway { server ONE max_fails=0; server TWO max_fails=0; keepalive 8; }
	server { listen 127.0.0.1:PORT; location / { proxy_pass http://gateway; proxy_read_timeout 1s; EXTRA } }
}
`
	haproxyConfig = `defaults
	mode http
	timeout connect 1s
	timeout client 10s
	timeout server 1s
	EXTRA
frontend shop
	bind 127.0.0.1:PORT
	default_backend gateway
backend gateway
	server one ONE
	server two TWO
`
	apacheConfig = `LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule slotmem_shm_module /usr/lib/apache2/modules/mod_slotmem_shm.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
LoadModule proxy_balancer_module /usr/lib/apache2/modules/mod_proxy_balancer.so
LoadModule lbmethod_byrequests_module /usr/lib/apache2/modules/mod_lbmethod_byrequests.so
ServerName shop.test
DefaultRuntimeDir DIR
PidFile DIR/pid
ErrorLog DIR/log
Listen 127.0.0.1:PORT
ProxyTimeout 1
<Proxy balancer://gateway>
	BalancerMember http://ONE retry=0
	BalancerMember http://TWO retry=0
	EXTRA
</Proxy>
ProxyPass / balancer://gateway/
`
	caddyConfig = `{
	admin off
	auto_https off
}
http://127.0.0.1:PORT {
	reverse_proxy ONE TWO {
		transport http {
			response_header_timeout 1s
		}
		EXTRA
	}
}
`
	squidConfig = `http_port 127.0.0.1:PORT
pid_filename DIR/pid
cache_log DIR/log
access_log none
coredump_dir DIR
cache deny all
http_access allow all
read_timeout 1 second
`
)

// start starts a proxy and returns where it listens: the gateway itself if there is none.
func (p proxy) start(ctx context.Context, one, two string) (stop func(), address string, err error) {
	if len(p.command) == 0 {
		return func() {}, one, nil
	}
	dir, args, address, err := p.prepare(one, two)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	var printed bytes.Buffer
	command := exec.CommandContext(ctx, args[0], args[1:]...) // #nosec G204 -- of the list above
	command.Stdout, command.Stderr = &printed, &printed
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 5 * time.Second
	if err := command.Start(); err != nil {
		cancel()
		return nil, "", err
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait()
		cancel() // nobody waits for it any more
		close(ended)
	}()
	stop = func() {
		cancel()
		<-ended
		_ = os.RemoveAll(dir)
	}
	if err := waitFor(ctx, address); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log")) // #nosec G304 -- its own
		stop()
		return nil, "", fmt.Errorf("%s does not listen: %w\n%s%s", args[0], err, printed.String(), log)
	}
	return stop, address, nil
}

// prepare makes a directory with the configuration, to which the users can write as whom the programs run.
func (p proxy) prepare(one, two string) (dir string, args []string, address string, err error) {
	port, err := freePort()
	if err != nil {
		return "", nil, "", err
	}
	if dir, err = os.MkdirTemp("", "intermediary"); err != nil {
		return "", nil, "", err
	}
	fill := strings.NewReplacer("DIR", dir, "PORT", port, "ONE", one, "TWO", two, "EXTRA", p.extra)
	for _, arg := range p.command {
		args = append(args, fill.Replace(arg))
	}
	err = errors.Join(
		os.Chmod(dir, 0o777), // #nosec G302 -- see above
		os.WriteFile(filepath.Join(dir, "config"), []byte(fill.Replace(p.config)), 0o644), // #nosec G306 -- no secret
	)
	return dir, args, "127.0.0.1:" + port, err
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

// waitFor waits until something listens.
func waitFor(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
