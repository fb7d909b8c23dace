"""tfy runs TensorFlow training on a Hadoop YARN cluster from one YAML file."""
