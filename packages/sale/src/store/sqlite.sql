CREATE TABLE IF NOT EXISTS sale_vouchers (
  voucher_id TEXT PRIMARY KEY,
  total INTEGER NOT NULL,
  live INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS sale_orders (
  order_id TEXT PRIMARY KEY,
  voucher_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  live_number INTEGER,
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  placed_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  UNIQUE (voucher_id, user_id, live_number)
) STRICT;
