// A provider whose access tokens nobody else can read: OpenID Connect's code flow, an ID token, and nothing more. Tests decide
// what it says and does next. Who comes to its `/authorize` is logged in there already.
import { type Emulator, type EmulatorOptions, startEmulator } from './emulator.ts';
import type { Claims, Habits, Login, Person } from './habits.ts';
import { ADA } from './login-page.ts';
import { OPENID_HABITS } from './openid-habits.ts';

export { CLIENT_ID, type ProviderBehaviour } from './emulator.ts';
export type { Claims } from './habits.ts';

export interface OpaqueProvider extends Omit<Emulator, 'logIn'> {
  /** Whether each refresh brings another refresh token, and the one before is taken for stolen. */
  rotates: boolean;
  /** Whether a refresh is answered with an ID token, too (OpenID Connect Core §12.2 leaves that open). */
  renewsIdToken: boolean;
  /** Whether there is a refresh token at all. */
  hasRefreshTokens: boolean;
  /** Seconds for which access tokens live. */
  expiresIn: number;
  /** Members of the ID token over those that belong there. */
  idToken: Claims;
  userinfo: Claims;
  /** The user logs in: what the browser brings back to the gateway for the address it was sent to. */
  logIn(asked: URL, claims?: Claims): { readonly code: string; readonly state: string };
}

const DEFAULT_CLAIMS = { sub: ADA.sub, name: ADA.name, email: ADA.email };

export async function startOpaqueProvider(
  options: Pick<EmulatorOptions, 'clock'> = {},
): Promise<OpaqueProvider> {
  const described = new WeakMap<Person, Claims>();
  const readClaims = ({ person }: Login): Claims => described.get(person) ?? DEFAULT_CLAIMS;

  const habits: Habits = {
    ...OPENID_HABITS,
    title: 'Opaque',
    givesRefreshToken: () => provider.hasRefreshTokens,
    describeInIdToken: (login) => ({ ...readClaims(login), ...provider.idToken }),
    describeInUserinfo: ({ person }) => ({ sub: person.sub, ...provider.userinfo }),
    get usedRefreshToken() {
      if (!provider.hasRefreshTokens) return 'is kept' as const;
      return provider.rotates ? ('ends the login' as const) : ('is kept' as const);
    },
    get renewsIdToken() {
      return provider.renewsIdToken;
    },
    get expiresIn() {
      return provider.expiresIn;
    },
  };

  /** A person of whom the ID token says these claims and no others. */
  function describe(further: Claims = {}): Person {
    const claims = { ...DEFAULT_CLAIMS, ...further };
    const person = { ...ADA, sub: String(claims.sub) };
    described.set(person, claims);
    return person;
  }

  const emulator = await startEmulator(habits, options);
  const { logIn } = emulator;
  const provider: OpaqueProvider = Object.assign(emulator, {
    rotates: true,
    renewsIdToken: true,
    hasRefreshTokens: true,
    expiresIn: 3600,
    idToken: {},
    userinfo: {},
    logIn: (asked: URL, claims?: Claims) => logIn(asked, describe(claims)),
  });
  return provider;
}
