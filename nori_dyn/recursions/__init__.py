"""The classical recursive algorithms, one a file, written once over any scalar."""
