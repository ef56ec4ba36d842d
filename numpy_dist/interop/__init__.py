"""Other libraries on distributed arrays: plug-ins that come along, of which `PLUGINS` says which are on."""
