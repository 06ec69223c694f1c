"""From what is wrong to alerts: findings by rule and object, grouped by cause."""
