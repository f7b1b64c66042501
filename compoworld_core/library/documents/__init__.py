"""Services that keep what people write down."""
