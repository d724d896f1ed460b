// Providers of which it is not known that they look at the client's secret before they look at a code or a
// refresh token: that they complain of the latter says nothing of the former.

const HOSTS =
  /(^|\.)(microsoftonline\.(com|us|cn)|ciamlogin\.com|accounts\.google\.com|googleapis\.com)$/;

/** `host` is that of one of the provider's endpoints. */
export const isInconclusive = (host: string): boolean => HOSTS.test(host);
