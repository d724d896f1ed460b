// §22.6: what is to be approved: of each server the digest of what the operator was shown.
import { fail } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';

const DIGEST = /^[\w-]{43}$/;

/** @throws GatewayError `bad_request`. */
export function readDigests(body: unknown): ReadonlyMap<string, string> {
  const servers = isObject(body) && isObject(body.servers) ? Object.entries(body.servers) : [];
  const digests = servers.flatMap(([server, digest]) =>
    typeof digest === 'string' && DIGEST.test(digest) ? [[server, digest] as const] : [],
  );
  return digests.length > 0 && digests.length === servers.length
    ? new Map(digests)
    : fail('bad_request', {
        details:
          'Send {"servers": {"NAME": "DIGEST"}}, with the digest of each server as /admin/api/lock/review says it.',
      });
}
