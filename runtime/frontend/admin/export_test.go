package admin

// Socket is where the daemon of a client listens.
func (c *Client) Socket() string { return c.socket }
