// Where GitHub's endpoints are: no document says it that could be relied on.
// https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps
// https://docs.github.com/enterprise-server/rest/using-the-rest-api/getting-started-with-the-rest-api (/api/v3)
// https://docs.github.com/enterprise-cloud@latest/admin/data-residency/getting-started-with-data-residency-for-github-enterprise-cloud
// (api.<name>.ghe.com)

export interface GithubUrls {
  readonly authorizationUrl: string;
  readonly tokenUrl: string;
  /** Of the REST API, without a slash at the end. */
  readonly apiUrl: string;
  /** https://docs.github.com/apps/github-authentication-discovery-endpoints: how it calls itself as an authorization server. */
  readonly redirectIssuer: string;
}

/** `url` is GITHUB_URL. */
export const buildGithubUrls = (url: string): GithubUrls => ({
  authorizationUrl: `${url}/login/oauth/authorize`,
  tokenUrl: `${url}/login/oauth/access_token`,
  apiUrl: findApiUrl(url),
  redirectIssuer: `${url}/login/oauth`,
});

function findApiUrl(url: string): string {
  const { host, protocol } = new URL(url);
  const hasHostOfItsOwn = host === 'github.com' || host.endsWith('.ghe.com');
  return hasHostOfItsOwn ? `${protocol}//api.${host}` : `${url}/api/v3`;
}
