CREATE TABLE IF NOT EXISTS sale_vouchers (
  voucher_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PRIMARY KEY,
  total BIGINT NOT NULL,
  live BIGINT NOT NULL
) ENGINE = InnoDB;
CREATE TABLE IF NOT EXISTS sale_orders (
  order_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  voucher_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  user_id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  live_number INTEGER,
  number INTEGER NOT NULL,
  state VARCHAR(16) NOT NULL,
  placed_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  UNIQUE (voucher_id, user_id, live_number)
) ENGINE = InnoDB;
ALTER TABLE sale_vouchers
  MODIFY voucher_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL;
ALTER TABLE sale_orders
  MODIFY voucher_id VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
  MODIFY user_id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL;
