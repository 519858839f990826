package embedded

import (
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/schema/sqlite"
)

// setupSchema creates the server's tables.
func setupSchema(exec func(statement string) error) error {
	return sqlite.SetupSchemaOnDB(execOnly{exec: exec}) //nolint:wrapcheck // datafile.Prepare adds the operation
}

// execOnly is as much of a database as creating tables needs. The server's own connection is not used for it, since its
// pool never closes one, and a file that is renamed must not be open.
type execOnly struct {
	sqlplugin.AdminDB
	exec func(statement string) error
}

// Exec implements sqlplugin.AdminDB.
func (e execOnly) Exec(statement string, _ ...any) error { return e.exec(statement) }
