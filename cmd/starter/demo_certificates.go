package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/internal/demo"
)

// Files that demo-certificates writes.
const (
	caFile, certFile, keyFile = "ca.pem", "cert.pem", "key.pem"
	certificateLife           = 30 * 24 * time.Hour
	// certificateLeft is how long one must be good for to be kept.
	certificateLeft = 7 * 24 * time.Hour
)

func (a *app) demoCertificatesCommand() *cobra.Command {
	var ca, dir string
	cmd := &cobra.Command{
		Use:   "demo-certificates --ca DIR --tls DIR NAME…",
		Short: "Make certificates for demo-services",
		Long: `Makes a certificate for the names, signed by a CA that signs nothing else: ca.pem in one folder, for those who are to trust
it (SSL_CERT_DIR names it to worker and server), cert.pem and key.pem in the other, for "demo-services --tls". They are good
for 30 days. Those that are there, for the same names and for another week, are left alone.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, names []string) error {
			if certified(ca, dir, names) {
				a.say("the certificates in %s are good", dir)
				return nil
			}
			made, err := demo.NewCertificates(names, certificateLife)
			if err != nil {
				return failed("%w", err)
			}
			for _, file := range []struct {
				path string
				body []byte
			}{{filepath.Join(dir, keyFile), made.Key}, {filepath.Join(dir, certFile), made.Cert}, {filepath.Join(ca, caFile), made.CA}} {
				if err := os.WriteFile(file.path, file.body, 0o600); err != nil {
					return failed("write certificates: %w", err)
				}
			}
			a.say("made certificates for %s", strings.Join(names, ", "))
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&ca, "ca", ".", "`folder` of ca.pem")
	flags.StringVar(&dir, "tls", ".", "`folder` of cert.pem and key.pem")
	return cmd
}

// certified says whether the files are there and good.
func certified(ca, dir string, names []string) bool {
	root, err := os.ReadFile(filepath.Join(ca, caFile))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(root) {
		return false
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return false
	}
	for _, name := range names {
		options := x509.VerifyOptions{DNSName: name, Roots: pool, CurrentTime: time.Now().Add(certificateLeft)}
		if _, err := pair.Leaf.Verify(options); err != nil {
			return false
		}
	}
	return true
}
