// Identity providers that `postern init` offers.

export interface KnownProvider {
  readonly title: string;
  readonly issuerExample: string;
  /** The issuer, if it is the same for all customers. */
  readonly issuer?: string;
  /** The setting for its address, if it is not OIDC_ISSUER. */
  readonly addressSetting?: 'GITHUB_URL';
}

/** No external provider: `postern dev` includes its own. */
export const DEV_PROVIDER = 'dev';

/** Any other provider, without a profile (OIDC_PROVIDER) or documentation page. */
export const OTHER_PROVIDER = 'other';

export const PROVIDER_CHOICES = [
  DEV_PROVIDER,
  'entra',
  'okta',
  'auth0',
  'keycloak',
  'google',
  'github',
  'gitlab',
  'slack',
  OTHER_PROVIDER,
] as const;

export type ProviderChoice = (typeof PROVIDER_CHOICES)[number];

const KNOWN_PROVIDERS: Readonly<Partial<Record<ProviderChoice, KnownProvider>>> = {
  entra: {
    title: 'Microsoft Entra ID',
    issuerExample: 'https://login.microsoftonline.com/<tenant id>/v2.0',
  },
  okta: {
    title: 'Okta',
    issuerExample: 'https://<org>.okta.com',
  },
  auth0: {
    title: 'Auth0',
    issuerExample: 'https://<tenant>.auth0.com/',
  },
  keycloak: { title: 'Keycloak', issuerExample: 'https://<host>/realms/<realm>' },
  google: {
    title: 'Google',
    issuerExample: 'https://accounts.google.com',
    issuer: 'https://accounts.google.com',
  },
  github: {
    title: 'GitHub',
    issuerExample: 'https://github.com, or a GitHub Enterprise Server',
    issuer: 'https://github.com',
    addressSetting: 'GITHUB_URL',
  },
  gitlab: { title: 'GitLab', issuerExample: 'https://gitlab.com, or a GitLab of your own' },
  slack: {
    title: 'Slack',
    issuerExample: 'https://slack.com',
    issuer: 'https://slack.com',
  },
  other: {
    title: 'Another OpenID provider',
    issuerExample: 'https://id.example.com',
  },
};

/** Undefined for the development provider. */
export const findProvider = (choice: ProviderChoice): KnownProvider | undefined =>
  KNOWN_PROVIDERS[choice];
