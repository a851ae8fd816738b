"""Networks from images to cells, and what they are made of: receptive fields, trunks, objectives, upsampling."""
