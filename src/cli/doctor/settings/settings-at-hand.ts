// The settings of a gateway, and what it would make of them: its own parts, which serve nobody here.

import { type Auth, createProviderAccess } from '../../../auth/auth.ts';
import { createKeySet, type KeySet } from '../../../auth/key-set.ts';
import {
  createProviderEndpoints,
  createProviderMetadata,
  type ProviderEndpoints,
  type ProviderMetadata,
} from '../../../auth/provider-metadata.ts';
import type { ProviderConfig } from '../../../config/groups/provider.ts';
import { createServerUrls, type ServerUrls } from '../../../config/server-urls.ts';
import { noMetrics } from '../../../telemetry/metrics/metrics.ts';
import type { Instruments } from '../instruments.ts';
import type { UsableSettings } from '../read-settings.ts';

export interface SettingsAtHandOptions extends Instruments, UsableSettings {}

export interface SettingsAtHand extends SettingsAtHandOptions {
  /** Undefined where nobody has to log in, and nobody can. */
  readonly access: ProviderAtHand | undefined;
  readonly serverUrls: ServerUrls;
  close(): void;
}

export interface ProviderAtHand {
  readonly provider: ProviderConfig;
  readonly metadata: ProviderMetadata;
  readonly endpoints: ProviderEndpoints;
  readonly keySet: KeySet;
  readonly auth: Auth;
}

export function openSettingsAtHand(options: SettingsAtHandOptions): SettingsAtHand {
  const { config, setup, clocks, clock, log } = options;
  const { fetch } = clocks;
  const { provider } = config.oauth;
  const isServer = (name: string) =>
    setup?.file.servers.some((server) => server.name === name) ?? false;
  const serverUrls = createServerUrls(config.server.baseUrl, provider?.audience, isServer);
  const deps = { fetch, clock, log, metrics: noMetrics };
  const metadata = provider && createProviderMetadata({ issuer: provider.issuer, ...deps });
  const keySet = metadata && createKeySet({ url: provider?.jwksUrl, metadata, ...deps });
  const { auth } = createProviderAccess(config, {
    isServer,
    isServerAudience: serverUrls.isAudience,
    keySet,
    ...deps,
  });
  return {
    ...options,
    serverUrls,
    access:
      provider === undefined || metadata === undefined || keySet === undefined
        ? undefined
        : {
            provider,
            metadata,
            keySet,
            auth,
            endpoints: createProviderEndpoints(config.oauth.endpoints, metadata),
          },
    close() {
      keySet?.close();
      auth.close();
    },
  };
}
