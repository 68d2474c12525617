"""What happens on a node: levels, paths, fragments, steps, tasks and the playbook's text."""
