// The protocol as the gateway opens it: both eras over the catalogue.

import type { GetChallenge } from '../http/endpoint/bearer.ts';
import type { GetProviderToken, UserContext } from '../http/endpoint/message.ts';
import { pause } from '../platform/clock.ts';
import type { JsonObject } from '../platform/json.ts';
import type { Callers, ClientOf } from './calls/call.ts';

import type { CallControl } from './calls/run-target.ts';
import type { Catalogs } from './catalog/served-catalog.ts';
import { defineFeature } from './feature.ts';
import { createMcp } from './mcp.ts';

interface CallNeeds extends CallControl, Catalogs {
  readonly findClientId: ClientOf;
  readonly getProviderToken: GetProviderToken;
  readonly auth: { readonly getChallenge: GetChallenge | undefined };
  readonly ownTokens: Pick<Callers, 'endedGrants'> | undefined;
  readonly operated:
    | {
        readonly sealPerson: Callers['sealPerson'];
        readonly recentCallers: { note: Callers['noteStatelessUser'] };
      }
    | undefined;
  readonly describeUser: ((user: UserContext) => JsonObject | undefined) | undefined;
}

export const calls = defineFeature({
  name: 'calls',
  open(runtime, needs: CallNeeds) {
    const { operated } = needs;
    const mcp = createMcp(runtime, needs, needs, {
      findClientId: needs.findClientId,
      getProviderToken: needs.getProviderToken,
      getChallenge: needs.auth.getChallenge,
      describeUser: needs.describeUser,
      sealPerson: operated?.sealPerson,
      noteStatelessUser: operated?.recentCallers.note,
      endedGrants: needs.ownTokens?.endedGrants,
    });
    return {
      gives: {
        corsHeaders: mcp.corsHeaders,
        endSession: mcp.endSession,
        countSessions: mcp.countSessions,
      },
      endpoints: mcp.endpoints,
      gauges: { activeSessions: mcp.countSessions },
      stopWaiting: mcp.stopWaiting,
      async drain(graceMs) {
        const isLate = pause(runtime.clock, graceMs);
        await Promise.all([Promise.race([mcp.drainStreams(), isLate]), mcp.endTasks(graceMs)]);
      },
      async close() {
        await mcp.keepStreams();
        mcp.close();
      },
    };
  },
});
