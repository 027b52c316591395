"""Results and models as files: JSON and URDF."""
