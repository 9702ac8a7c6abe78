"""The camera driver node on OpenCV."""
