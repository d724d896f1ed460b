/** The hosts of this computer, as a URL names them (RFC 8252 §7.3). */
export const LOOPBACK_HOSTS: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

export const isLoopbackHost = (hostname: string): boolean => LOOPBACK_HOSTS.includes(hostname);
