-- The orders with their state and the gateway's response, as statements select from them. This is the one
-- place that knows the state of an order: it is what the merchant has marked, and before that what the order
-- guard has recorded, in its view. The shop keeps no copy, which a crash could leave behind.
FROM (SELECT o.*, CASE
		WHEN o.mark <> '' THEN o.mark
		WHEN g.state = 'in flight' THEN 'sending'
		WHEN g.state <> 'free' THEN g.state
		WHEN g.resolved_at >= g.begun_at THEN 'none'
		WHEN g.outcome = 'rejected' THEN 'refused'
		WHEN g.outcome <> '' THEN 'unsent'
		ELSE 'open' END AS state,
	CASE WHEN g.state = 'created' THEN g.invoice END AS invoice
	FROM shop_orders AS o LEFT JOIN gateway_orders_list AS g ON g.merchant = '' AND g.order_id = o.id) AS orders
