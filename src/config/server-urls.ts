// §18.2: the URLs of servers behind the gateway, as resources that clients name (RFC 8707), and as audiences of tokens.

export interface ServerUrls {
  /** True if it is the URL of a server, which is a resource of ours; with a slash at its end or without. */
  isResource(url: string): boolean;
  /** True if a token may name it as its audience. */
  isAudience(url: string): boolean;
}

/** The default of `OIDC_AUDIENCE`. The provider is asked for a token for the first of them (RFC 8707). */
export const listOwnAudiences = (baseUrl: string): readonly string[] => [
  `${baseUrl}/mcp`,
  baseUrl,
  `${baseUrl}/`,
];

/**
 * `audience` is `OIDC_AUDIENCE`, undefined without a provider: what an operator has chosen is not widened.
 * `isServer` is asked each time: servers come and go with the configuration.
 */
export function createServerUrls(
  baseUrl: string,
  audience: readonly string[] | undefined,
  isServer: (name: string) => boolean,
): ServerUrls {
  const start = `${baseUrl}/mcp/`;
  const isServerUrl = (url: string) => url.startsWith(start) && isServer(url.slice(start.length));
  const isDefault = audience?.join() === listOwnAudiences(baseUrl).join();
  return {
    isResource: (url) => isServerUrl(url.replace(/\/$/, '')),
    isAudience: isDefault ? isServerUrl : () => false,
  };
}
