package safehttp_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/safehttp"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	strict := safehttp.New(safehttp.Config{})
	dev := safehttp.New(safehttp.Config{AllowLoopback: true})
	inside := safehttp.New(safehttp.Config{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})

	tests := map[string]struct {
		client *safehttp.Client
		url    string
		reason string // empty: allowed
	}{
		"https":                       {strict, "https://as.example/authorize?x=1", ""},
		"public literal":              {strict, "https://93.184.216.34/", ""},
		"public IPv6":                 {strict, "https://[2606:4700::1111]/", ""},
		"http":                        {strict, "http://as.example/", "scheme"},
		"http loopback":               {strict, "http://127.0.0.1:8080/", "scheme"},
		"https loopback":              {strict, "https://127.0.0.1/", "loopback"},
		"https localhost":             {strict, "https://localhost/", "loopback"},
		"https localhost with dot":    {strict, "https://LOCALHOST./", "loopback"},
		"https sub of localhost":      {strict, "https://a.localhost/", "loopback"},
		"https IPv6 loopback":         {strict, "https://[::1]/", "loopback"},
		"dev http localhost":          {dev, "http://localhost:80/x", ""},
		"dev http loopback":           {dev, "http://127.0.0.1/", ""},
		"dev http IPv6 loopback":      {dev, "http://[::1]:9/", ""},
		"dev http elsewhere":          {dev, "http://as.example/", "plain http"},
		"dev http private":            {dev, "http://10.0.0.1/", "plain http"},
		"dev https private":           {dev, "https://10.0.0.1/", "private"},
		"dev mapped loopback":         {dev, "http://[::ffff:127.0.0.1]/", "IPv4-mapped"},
		"mapped loopback":             {strict, "https://[::ffff:127.0.0.1]/", "loopback"},
		"javascript":                  {strict, "javascript:alert(1)", "scheme"},
		"data":                        {strict, "data:text/html,x", "scheme"},
		"file":                        {strict, "file:///etc/passwd", "scheme"},
		"gopher":                      {strict, "gopher://x/", "scheme"},
		"no scheme":                   {strict, "//as.example/", "scheme"},
		"no host":                     {strict, "https:///x", "without a host"},
		"opaque":                      {strict, "https:as.example", "without a host"},
		"userinfo":                    {strict, "https://user:pw@as.example/", "user information"},
		"empty user":                  {strict, "https://@as.example/", "user information"},
		"fragment":                    {strict, "https://as.example/#x", "fragment"},
		"empty fragment":              {strict, "https://as.example/#", "fragment"},
		"control character":           {strict, "https://as.example/\x00", "not a valid URL"},
		"metadata":                    {strict, "https://169.254.169.254/latest", "metadata"},
		"Azure wire server":           {strict, "https://168.63.129.16/", "metadata"},
		"Alibaba metadata":            {strict, "https://100.100.100.200/", "metadata"},
		"EC2 IPv6 metadata":           {strict, "https://[fd00:ec2::254]/", "metadata"},
		"private 10":                  {strict, "https://10.0.0.1/", "private"},
		"private 172":                 {strict, "https://172.31.255.255/", "private"},
		"next to 172":                 {strict, "https://172.32.0.1/", ""},
		"private 192":                 {strict, "https://192.168.1.1/", "private"},
		"CGNAT":                       {strict, "https://100.64.0.1/", "CGNAT"},
		"link-local":                  {strict, "https://169.254.0.1/", "link-local"},
		"link-local with zone":        {strict, "https://[fe80::1%25eth0]/", "link-local"},
		"unique local":                {strict, "https://[fd12::1]/", "private"},
		"multicast":                   {strict, "https://224.0.0.1/", "multicast"},
		"IPv6 multicast":              {strict, "https://[ff02::1]/", "multicast"},
		"unspecified":                 {strict, "https://0.0.0.0/", "unspecified"},
		"IPv6 unspecified":            {strict, "https://[::]/", "unspecified"},
		"broadcast":                   {strict, "https://255.255.255.255/", "reserved"},
		"benchmark":                   {strict, "https://198.18.0.1/", "reserved"},
		"mapped private":              {strict, "https://[::ffff:10.0.0.1]/", "private"},
		"mapped private in hex":       {strict, "https://[::ffff:a00:1]/", "private"},
		"mapped public":               {strict, "https://[::ffff:93.184.216.34]/", "IPv4-mapped"},
		"IPv4-compatible":             {strict, "https://[::10.0.0.1]/", "embeds"},
		"NAT64":                       {strict, "https://[64:ff9b::a00:1]/", "embeds"},
		"local NAT64":                 {strict, "https://[64:ff9b:1::a00:1]/", "embeds"},
		"6to4":                        {strict, "https://[2002:a00:1::]/", "embeds"},
		"Teredo":                      {strict, "https://[2001::1]/", "embeds"},
		"allowed range":               {inside, "https://10.1.2.3/", ""},
		"allowed range, mapped":       {inside, "https://[::ffff:10.1.2.3]/", ""},
		"beside the allowed range":    {inside, "https://10.2.0.1/", "private"},
		"allowed range, not by http":  {inside, "http://10.1.2.3/", "scheme"},
		"allowed range, no loopback":  {inside, "https://127.0.0.1/", "loopback"},
		"allowed range, no metadata":  {inside, "https://169.254.169.254/", "metadata"},
		"decimal form is only a name": {strict, "https://2130706433/", ""}, // refused when it resolves
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.client.CheckURL(tt.url)
			if tt.reason == "" {
				require.NoError(t, err)
				return
			}
			var blocked *safehttp.BlockedError
			require.ErrorAs(t, err, &blocked)
			require.Contains(t, blocked.Reason, tt.reason)
		})
	}
}

func TestBlockedErrorKeepsSecretsOut(t *testing.T) {
	t.Parallel()
	c := safehttp.New(safehttp.Config{})
	for _, raw := range []string{
		"https://secret:secret@10.0.0.1/?code=secret",
		"http://as.example/?code=secret",
		"https://10.0.0.1/secret?code=secret",
		"https://as.example/?code=secret#secret",
		"https://as.example/secret\x7f?code=secret",
		"secret://as.example/",
	} {
		err := c.CheckURL(raw)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
	}
}
