// The identity providers that `postern init` knows.

export interface KnownProvider {
  /** As in `--provider`. */
  readonly id: string;
  readonly title: string;
  /** Of OIDC_PROVIDER; undefined for the development provider, and for any other. */
  readonly profile: string | undefined;
  readonly issuerExample: string;
  /** The issuer that all have. */
  readonly issuer?: string;
  /** Which page says how to register the gateway. */
  readonly page: string;
}

/** No provider: `postern dev` has one of its own. */
export const DEV_PROVIDER = 'dev';

export const PROVIDER_CHOICES = [
  DEV_PROVIDER,
  'entra',
  'okta',
  'auth0',
  'keycloak',
  'google',
  'other',
] as const;

export type ProviderChoice = (typeof PROVIDER_CHOICES)[number];

export const KNOWN_PROVIDERS: readonly KnownProvider[] = [
  {
    id: 'entra',
    title: 'Microsoft Entra ID',
    profile: 'entra',
    issuerExample: 'https://login.microsoftonline.com/<tenant id>/v2.0',
    page: 'provider-entra',
  },
  {
    id: 'okta',
    title: 'Okta',
    profile: 'okta',
    issuerExample: 'https://<org>.okta.com',
    page: 'provider-okta',
  },
  {
    id: 'auth0',
    title: 'Auth0',
    profile: 'auth0',
    issuerExample: 'https://<tenant>.auth0.com/',
    page: 'provider-auth0',
  },
  {
    id: 'keycloak',
    title: 'Keycloak',
    profile: 'keycloak',
    issuerExample: 'https://<host>/realms/<realm>',
    page: 'provider-keycloak',
  },
  {
    id: 'google',
    title: 'Google',
    profile: 'google',
    issuerExample: 'https://accounts.google.com',
    issuer: 'https://accounts.google.com',
    page: 'provider-google',
  },
  {
    id: 'other',
    title: 'Another OpenID provider',
    profile: undefined,
    issuerExample: 'https://id.example.com',
    page: 'providers',
  },
];

export const findProvider = (choice: ProviderChoice): KnownProvider | undefined =>
  KNOWN_PROVIDERS.find(({ id }) => id === choice);
