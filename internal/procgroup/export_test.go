package procgroup

// WithoutNamespace makes the command start as on a machine that allows no PID namespace.
func (c *Command) WithoutNamespace() *Command {
	c.noNamespace = true
	return c
}
