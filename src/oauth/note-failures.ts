// §22.4: logins that fail at an endpoint of OAuth are noted for operators.
import type { Endpoint } from '../endpoint/endpoint.ts';
import { toGatewayError } from '../errors/gateway-error.ts';
import type { LoginStep, NoteLoginFailure } from './login-failures.ts';
import { isFailure, readClient, watchEndpoint } from './watch-endpoint.ts';

const STEPS: Readonly<Record<string, LoginStep>> = {
  '/oauth/register': 'register',
  '/oauth/authorize': 'authorize',
  '/oauth/consent': 'consent',
  '/oauth/callback': 'callback',
  '/oauth/token': 'token',
};

/** The same endpoints. */
export const noteFailures = (
  endpoints: readonly Endpoint[],
  note: NoteLoginFailure,
): readonly Endpoint[] =>
  endpoints.map((endpoint) => {
    const step = STEPS[endpoint.path];
    if (step === undefined || endpoint.kind !== 'public') return endpoint;
    return watchEndpoint(endpoint, ({ clientIp: ip }) => (end) => {
      if ('thrown' in end) {
        const { key: error, message, failure } = toGatewayError(end.thrown);
        note({ step, ip, client: readClient(failure), error, message });
      } else if (isFailure(end.result)) {
        const { error = UNNAMED } = end.result;
        note({
          step,
          ip,
          client: readClient(end.result),
          error: error.key,
          message: error.message,
        });
      }
    });
  });

/** A refusal of the provider that says nothing. */
const UNNAMED = { key: 'refused_by_provider', message: 'The provider refused, without a reason.' };
