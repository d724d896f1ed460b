// §5: who is let in.
import { type Read, requireValue } from '../setting.ts';
import { type ProviderConfig, providerSettings } from './provider.ts';
import { serverSettings } from './server.ts';

/** Whether callers need a token, and of whom. */
export type AuthConfig = { readonly required: false } | RequiredAuthConfig;

export interface RequiredAuthConfig {
  readonly required: true;
  readonly provider: ProviderConfig;
  /** Seconds by which the provider's clock may differ. */
  readonly clockToleranceSeconds: number;
  /** Tokens whose good signature is remembered, at most; 0 for none. */
  readonly signatureMemory: number;
}

export function readAuthConfig(read: Read, provider: ProviderConfig | undefined): AuthConfig {
  if (!read(serverSettings.authRequired)) return { required: false };
  return {
    required: true,
    provider: requireValue(provider, providerSettings.issuer),
    clockToleranceSeconds: read(providerSettings.clockToleranceSeconds),
    signatureMemory: read(providerSettings.signatureMemory),
  };
}
