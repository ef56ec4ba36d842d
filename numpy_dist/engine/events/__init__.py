"""Where statements were recorded, and what is told of them: sites, floating-point events, filters, notation."""
