-- The tables of the shop, for PostgreSQL and SQLite. Times are in UTC.

CREATE TABLE IF NOT EXISTS shop_orders (
	id text NOT NULL PRIMARY KEY,
	buyer text NOT NULL,
	product text NOT NULL,
	contact text NOT NULL DEFAULT '',
	made_at timestamp NOT NULL,
	mark text NOT NULL DEFAULT '', -- paid, shipped or cancelled, by the merchant; the order guard knows the rest
	changes integer NOT NULL DEFAULT 0, -- how often it was marked or about to be sent
	-- what was sent last
	price text NOT NULL DEFAULT '0',
	currency text NOT NULL DEFAULT '',
	amount text NOT NULL DEFAULT '0', -- in units of the coin
	coin text NOT NULL DEFAULT '',
	network text NOT NULL DEFAULT ''
);

CREATE INDEX IF NOT EXISTS shop_orders_made ON shop_orders (made_at);

-- What merchants have done, with their names.
CREATE TABLE IF NOT EXISTS shop_history (
	order_id text NOT NULL,
	at timestamp NOT NULL,
	name text NOT NULL,
	what text NOT NULL
);

-- The coins that have needed a tag, with an order that had one: without it they are not paid any more.
CREATE TABLE IF NOT EXISTS shop_tags (
	coin text NOT NULL,
	network text NOT NULL,
	order_id text NOT NULL,
	PRIMARY KEY (coin, network)
);

-- The withdrawals that the merchant follows, because the gateway does not list them.
CREATE TABLE IF NOT EXISTS shop_withdrawals (
	id text NOT NULL PRIMARY KEY,
	added_by text NOT NULL,
	added_at timestamp NOT NULL
);

-- The sessions of all servers. A session that ends here has ended on every server.
CREATE TABLE IF NOT EXISTS shop_sessions (
	id text NOT NULL PRIMARY KEY,
	data bytea NOT NULL,
	ends timestamp NOT NULL
);

-- The gateway of all orders.
CREATE TABLE IF NOT EXISTS shop_gateway (
	id integer NOT NULL PRIMARY KEY CHECK (id = 1),
	name text NOT NULL
);
