package kms

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tink-crypto/tink-go-awskms/v3/integration/awskms"
	"github.com/tink-crypto/tink-go/v2/tink"

	"tarry/auth/vault"
)

// Clients are all of this package, by the schemes of their URIs. Lookup finds environment variables: VAULT_TOKEN,
// VAULT_TOKEN_FILE, VAULT_NAMESPACE and VAULT_CACERT for hcvault. That of AWS reads its own: AWS_REGION, AWS_PROFILE,
// AWS_ROLE_ARN and so on, and its files.
func Clients(lookup func(string) (string, bool)) vault.Clients {
	return vault.Clients{"hcvault": Vault(lookup), "aws-kms": AWS}
}

var errForm = errors.New("the URI is malformed")

// AWS is a key of AWS KMS: aws-kms://arn:aws:kms:REGION:ACCOUNT:key/ID.
func AWS(ctx context.Context, uri string) (tink.AEADWithContext, error) {
	arn, ok := strings.CutPrefix(uri, "aws-kms://")
	if !ok || strings.Count(arn, ":") < 5 || !strings.HasPrefix(arn, "arn:") {
		return nil, fmt.Errorf("%w: it looks like aws-kms://arn:aws:kms:REGION:ACCOUNT:key/ID", errForm)
	}
	key, err := awskms.NewAEADWithContext(ctx, arn, awskms.WithEncryptionContextName(awskms.AssociatedData))
	if err != nil {
		return nil, fmt.Errorf("configure AWS: %w", err)
	}
	return key, nil
}
