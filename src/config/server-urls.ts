// §18.2: the URLs of servers behind the gateway, as resources in client requests (RFC 8707), and as audiences of tokens.

export interface ServerUrls {
  /** True if the URL belongs to a server of this gateway, with or without a trailing slash. */
  isResource(url: string): boolean;
  /** True if a token may have this URL as its audience. */
  isAudience(url: string): boolean;
}

/** The default of `OIDC_AUDIENCE`. The gateway requests tokens for the first of these from the provider (RFC 8707). */
export const listOwnAudiences = (baseUrl: string): readonly string[] => [
  `${baseUrl}/mcp`,
  baseUrl,
  `${baseUrl}/`,
];

/**
 * `audience` is `OIDC_AUDIENCE`; undefined without a provider. An explicit audience is never widened. `isServer` is called every
 * time, since servers come and go with the configuration.
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
