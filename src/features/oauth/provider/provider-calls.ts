// Decisions 10: a provider that stalls must not keep every request that comes meanwhile.
import { fail } from '../../../core/errors/gateway-error.ts';

export interface ProviderCalls {
  /**
   * Runs one call to the provider.
   *
   * @throws GatewayError `provider_busy`, at once, when too many are in flight.
   */
  run<Result>(call: () => Promise<Result>): Promise<Result>;
  /**
   * For what must not be used up in vain, such as a code.
   *
   * @throws GatewayError `provider_busy` when a call now would be refused.
   */
  requirePlace(): void;
}

const MAX_IN_FLIGHT = 100;
/** Half the time after which a call is given up. */
const RETRY_AFTER_SECONDS = 5;

export function createProviderCalls(): ProviderCalls {
  let inFlight = 0;

  function requirePlace(): void {
    if (inFlight < MAX_IN_FLIGHT) return;
    fail('provider_busy', { headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) } });
  }

  return {
    requirePlace,
    async run(call) {
      requirePlace();
      inFlight += 1;
      try {
        return await call();
      } finally {
        inFlight -= 1;
      }
    },
  };
}
