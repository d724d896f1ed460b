// ID_JAG_ISSUERS: whose assertions are taken. Each issuer has a discovery document and a key set of its own, so that one that is slow
// or down holds up nobody but its own users.

import {
  createProviderMetadata,
  type IssuerSetting,
  type ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import { isSafeForTokens } from '../../platform/address.ts';
import { stripUri } from '../../platform/secret-texts.ts';

import { createKeySet, type FetchRuntime, type KeySet } from '../auth/key-set.ts';

const SETTING: IssuerSetting = {
  variable: 'ID_JAG_ISSUERS',
  remedy: 'ID_JAG_ISSUERS',
  advice: 'If this is your provider, name it in ID_JAG_ISSUERS exactly as it names itself.',
};

export type AssertionIssuers = ReturnType<typeof createAssertionIssuers>;

/** `provider` is that of logins, whose keys are fetched already. */
export function createAssertionIssuers(
  runtime: FetchRuntime,
  issuers: readonly string[],
  provider: { readonly issuer: string; readonly keySet: KeySet },
) {
  const others = issuers.filter((issuer) => issuer !== provider.issuer);
  const opened = new Map(others.map((issuer) => [issuer, openKeySet(runtime, issuer)]));
  const all = issuers.includes(provider.issuer)
    ? new Map([...opened, [provider.issuer, provider.keySet]])
    : opened;

  return {
    /** For the log. */
    names: issuers,
    /** Undefined for an issuer that the settings do not name. */
    findKeySet: (issuer: unknown): KeySet | undefined =>
      typeof issuer === 'string' ? all.get(issuer) : undefined,
    close(): void {
      for (const keySet of opened.values()) keySet.close();
    },
  };
}

function openKeySet(runtime: FetchRuntime, issuer: string): KeySet {
  const keySet = createKeySet(runtime, {
    url: undefined,
    metadata: requireSafeKeys(createProviderMetadata(runtime, issuer, SETTING)),
    owner: {
      name: `The key set of an issuer of assertions (${stripUri(issuer)})`,
      advice: 'Check ID_JAG_ISSUERS, the issuer, and the outbound network.',
    },
  });
  keySet.start();
  return keySet;
}

/** Whoever can change the keys on their way can be anybody. */
const requireSafeKeys = (metadata: ProviderMetadata): ProviderMetadata => ({
  issuer: metadata.issuer,
  async get() {
    const document = await metadata.get();
    const { jwks_uri: url } = document;
    if (url !== undefined && isSafeForTokens(url)) return document;
    throw new Error(`the jwks_uri of ${stripUri(metadata.issuer)} is not https`);
  },
});
