// What a browser approved before, so that it is not asked again.
import type { ConsentConfig } from '../../config/groups/consent.ts';
import { hashSha256 } from '../../platform/sha256.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import type { AuthorizationRequest } from '../request/authorization-request.ts';

export interface Approvals {
  /** Whether the browser approved this: whatever is new is asked anew. */
  isApproved(request: AuthorizationRequest, browserHash: string): Promise<boolean>;
  /** Whether it approved the client at this redirect URI, be it for other scopes. */
  isClientApproved(request: AuthorizationRequest, browserHash: string): Promise<boolean>;
  remember(request: AuthorizationRequest, browserHash: string): Promise<void>;
}

export interface ApprovalsSettings extends Pick<ConsentConfig, 'ttlSeconds'> {
  /** The scopes that the provider will be asked for. */
  readonly listScopes: (scope: string | undefined) => readonly string[];
}

export function createApprovals(store: KeyValue, settings: ApprovalsSettings): Approvals {
  const { ttlSeconds, listScopes } = settings;

  const buildClientKey = ({ clientId, redirectUri }: AuthorizationRequest, browserHash: string) =>
    buildOAuthKey(
      'approved-client',
      hashSha256(JSON.stringify([browserHash, clientId, redirectUri])),
    );

  function buildApprovalKey(request: AuthorizationRequest, browserHash: string): string {
    const { clientId, redirectUri, parameters } = request;
    const scopes = [...new Set(listScopes(parameters.get('scope')))].sort();
    return buildOAuthKey(
      'approval',
      hashSha256(JSON.stringify([browserHash, clientId, redirectUri, scopes])),
    );
  }

  const isStored = async (key: string) => ttlSeconds > 0 && (await store.get(key)) !== undefined;

  return {
    isApproved: (request, browserHash) => isStored(buildApprovalKey(request, browserHash)),
    isClientApproved: (request, browserHash) => isStored(buildClientKey(request, browserHash)),
    async remember(request, browserHash) {
      if (ttlSeconds === 0) return;
      await Promise.all(
        [buildApprovalKey(request, browserHash), buildClientKey(request, browserHash)].map((key) =>
          store.set(key, '1', ttlSeconds),
        ),
      );
    },
  };
}
