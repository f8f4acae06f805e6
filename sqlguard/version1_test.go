package sqlguard

// The table and the statements of version 1, word for word; {table} is its name.

const schema1PostgreSQL = `CREATE TABLE IF NOT EXISTS "{table}" (
	merchant      text COLLATE "C" NOT NULL DEFAULT '', -- empty: the one that the client is for
	order_id      text COLLATE "C" NOT NULL,
	attempts      integer NOT NULL, -- how often it was begun
	token         text,             -- of the Begin without End; otherwise NULL
	begun_at      timestamptz NOT NULL,
	lease_until   timestamptz NOT NULL,  -- from then on an order with a token is unknown
	ended_at      timestamptz,
	outcome       text,             -- recorded at ended_at
	unknown_since timestamptz,           -- NULL: no earlier outcome is unknown
	created_at    timestamptz,           -- NULL: no invoice is known to exist
	resolved_at   timestamptz,
	resolved_by   text,
	resolution    text,             -- "exists" or "does not exist"
	note          text,
	PRIMARY KEY (merchant, order_id)
);

CREATE INDEX IF NOT EXISTS "{table}_open" ON "{table}" (merchant, order_id)
	WHERE token IS NOT NULL OR unknown_since IS NOT NULL;

CREATE INDEX IF NOT EXISTS "{table}_done" ON "{table}" ((greatest(begun_at, ended_at, resolved_at)))
	WHERE token IS NULL AND unknown_since IS NULL;
`

const begin1PostgreSQL = `INSERT INTO "{table}" AS o (merchant, order_id, token, attempts, begun_at, lease_until)
SELECT CAST($1 AS text), CAST($2 AS text), CAST($3 AS text), 1, c.at, c.at + CAST(CAST($4 AS text) AS interval) FROM (SELECT clock_timestamp() AS at, set_config('lock_timeout', CAST($7 AS text), true) AS bound) AS c
WHERE bound IS NOT NULL
ON CONFLICT (merchant, order_id) DO UPDATE SET (token, attempts, begun_at, lease_until, unknown_since) = (
	SELECT
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', $5, $6) THEN excluded.token ELSE o.token       END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', $5, $6) THEN o.attempts + 1 ELSE o.attempts    END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', $5, $6) THEN c.at           ELSE o.begun_at    END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', $5, $6) THEN c.at + CAST(CAST($4 AS text) AS interval)        ELSE o.lease_until END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', $5, $6) AND o.token IS NOT NULL THEN coalesce(o.unknown_since, o.begun_at) ELSE o.unknown_since END
	FROM (SELECT clock_timestamp() AS at) AS c)
RETURNING CASE WHEN token = $3 THEN 'begun' ELSE CASE
		WHEN token IS NOT NULL AND lease_until > clock_timestamp() THEN 'in flight'
		WHEN token IS NOT NULL OR unknown_since IS NOT NULL THEN 'unknown'
		WHEN created_at IS NOT NULL THEN 'created'
		ELSE 'free' END END`

const end1PostgreSQL = `UPDATE "{table}" SET
	token         = CASE WHEN token = $3 THEN NULL ELSE token END,
	unknown_since = CASE
		WHEN $4 = 'unknown' THEN coalesce(unknown_since, begun_at)
		WHEN $4 = 'succeeded' AND token = $3 THEN NULL
		ELSE unknown_since END,
	created_at    = CASE WHEN $4 = 'succeeded' THEN now() ELSE created_at END,
	ended_at      = now(),
	outcome       = $4
WHERE merchant = $1 AND order_id = $2 AND (token = $3 OR $4 IN ('succeeded', 'unknown'))
RETURNING 'ended'`

const schema1SQLite = `CREATE TABLE IF NOT EXISTS "{table}" (
	merchant      text NOT NULL DEFAULT '', -- empty: the one that the client is for
	order_id      text NOT NULL,
	attempts      integer NOT NULL, -- how often it was begun
	token         text,             -- of the Begin without End; otherwise NULL
	begun_at      text NOT NULL,
	lease_until   text NOT NULL,  -- from then on an order with a token is unknown
	ended_at      text,
	outcome       text,             -- recorded at ended_at
	unknown_since text,           -- NULL: no earlier outcome is unknown
	created_at    text,           -- NULL: no invoice is known to exist
	resolved_at   text,
	resolved_by   text,
	resolution    text,             -- "exists" or "does not exist"
	note          text,
	PRIMARY KEY (merchant, order_id)
);

CREATE INDEX IF NOT EXISTS "{table}_open" ON "{table}" (merchant, order_id)
	WHERE token IS NOT NULL OR unknown_since IS NOT NULL;

CREATE INDEX IF NOT EXISTS "{table}_done" ON "{table}" ((max(begun_at, coalesce(ended_at, begun_at), coalesce(resolved_at, begun_at))))
	WHERE token IS NULL AND unknown_since IS NULL;
`

const begin1SQLite = `INSERT INTO "{table}" AS o (merchant, order_id, token, attempts, begun_at, lease_until)
SELECT CAST(?1 AS text), CAST(?2 AS text), CAST(?3 AS text), 1, c.at, strftime('%Y-%m-%dT%H:%M:%fZ', c.at, ?4) FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS at) AS c WHERE true
ON CONFLICT (merchant, order_id) DO UPDATE SET (token, attempts, begun_at, lease_until, unknown_since) = (
	SELECT
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', ?5, ?6) THEN excluded.token ELSE o.token       END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', ?5, ?6) THEN o.attempts + 1 ELSE o.attempts    END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', ?5, ?6) THEN c.at           ELSE o.begun_at    END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', ?5, ?6) THEN strftime('%Y-%m-%dT%H:%M:%fZ', c.at, ?4)        ELSE o.lease_until END,
		CASE WHEN CASE
		WHEN o.token IS NOT NULL AND o.lease_until > c.at THEN 'in flight'
		WHEN o.token IS NOT NULL OR o.unknown_since IS NOT NULL THEN 'unknown'
		WHEN o.created_at IS NOT NULL THEN 'created'
		ELSE 'free' END IN ('free', ?5, ?6) AND o.token IS NOT NULL THEN coalesce(o.unknown_since, o.begun_at) ELSE o.unknown_since END
	FROM (SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 'now') AS at) AS c)
RETURNING CASE WHEN token = ?3 THEN 'begun' ELSE CASE
		WHEN token IS NOT NULL AND lease_until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now') THEN 'in flight'
		WHEN token IS NOT NULL OR unknown_since IS NOT NULL THEN 'unknown'
		WHEN created_at IS NOT NULL THEN 'created'
		ELSE 'free' END END`

const end1SQLite = `UPDATE "{table}" SET
	token         = CASE WHEN token = ?3 THEN NULL ELSE token END,
	unknown_since = CASE
		WHEN ?4 = 'unknown' THEN coalesce(unknown_since, begun_at)
		WHEN ?4 = 'succeeded' AND token = ?3 THEN NULL
		ELSE unknown_since END,
	created_at    = CASE WHEN ?4 = 'succeeded' THEN strftime('%Y-%m-%dT%H:%M:%fZ', 'now') ELSE created_at END,
	ended_at      = strftime('%Y-%m-%dT%H:%M:%fZ', 'now'),
	outcome       = ?4
WHERE merchant = ?1 AND order_id = ?2 AND (token = ?3 OR ?4 IN ('succeeded', 'unknown'))
RETURNING 'ended'`
