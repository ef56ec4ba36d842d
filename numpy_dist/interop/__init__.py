"""Other libraries on distributed arrays: plug-ins that come along, off until ``PLUGINS`` names them."""
