// §18.3, §18.4: a call goes through to its server, whatever the eras of client and server.
import type { Clock } from '../../../core/clock.ts';
import type { JsonObject } from '../../../core/json.ts';
import type { Log } from '../../../core/log.ts';
import type { Context } from '../../mcp/catalog/catalog.ts';
import { createToFailedResult } from './failures.ts';
import { toRawResult } from './raw-result.ts';
import type { RedeemAnswers } from './redeemed-answers.ts';
import type { RelayCall, RelayedCall } from './relayed-call.ts';
import { relayToSessionClient } from './session-client.ts';
import { relayToStatelessClient } from './stateless-client.ts';
import type { SuspendedCalls } from './suspended/suspended-calls.ts';

export interface RelayCallDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly suspendedCalls: SuspendedCalls;
  readonly redeemAnswers: RedeemAnswers;
}

export function createRelayCall(deps: RelayCallDeps): RelayCall {
  const toFailedResult = createToFailedResult(deps);

  const relay = (call: RelayedCall, context: Context): Promise<JsonObject> => {
    const { relay: client } = context;
    return client.era === 'session'
      ? relayToSessionClient(call, client, context)
      : relayToStatelessClient(deps, call, client, context);
  };

  return async function relayCall(upstream, caller, request, context) {
    try {
      const result = await relay({ upstream, caller, request }, context);
      return toRawResult(request.method, result, context);
    } catch (thrown) {
      return toFailedResult(upstream.config.name, request.method, thrown, {
        era: context.relay.era,
        capabilities: caller.capabilities,
      });
    }
  };
}
