package sqlguard

// For the tests that read a file, which the package export does: it imports this package.
var (
	PostgresDSN = postgresDSN
	RequestText = requestText
)
