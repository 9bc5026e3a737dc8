CREATE TABLE IF NOT EXISTS sale_vouchers (
  voucher_id VARCHAR(128) PRIMARY KEY,
  total BIGINT NOT NULL,
  live BIGINT NOT NULL
);
CREATE TABLE IF NOT EXISTS sale_orders (
  order_id VARCHAR(64) PRIMARY KEY,
  voucher_id VARCHAR(128) NOT NULL,
  user_id VARCHAR(255) NOT NULL,
  live_number INTEGER,
  number INTEGER NOT NULL,
  state VARCHAR(16) NOT NULL,
  placed_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  UNIQUE (voucher_id, user_id, live_number)
);
