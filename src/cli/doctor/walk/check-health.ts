// §4.3: what the gateway itself says it lacks.
import { isObject } from '../../../platform/json.ts';
import { type Advice, type Finding, failure, ok, unknown } from '../finding.ts';
import type { Walk } from './walk.ts';

const CHECK = 'gateway.ready';
export const STORE_CHECK = `${CHECK}.store`;

const LACKS: Readonly<Record<string, Advice & { readonly what: string }>> = {
  keySet: {
    what: "The gateway never got the provider's key set, so it can check no token.",
    why: 'The provider is down or cannot be reached from the gateway, or its discovery document names another issuer.',
    setting: 'OIDC_ISSUER',
    remedy:
      "start the provider, or correct OIDC_ISSUER; where only a proxy leads out, set HTTPS_PROXY=http://host:port. The gateway's log has the reason, and `postern doctor` without a URL, where the gateway's settings are, finds it.",
  },
  store: {
    what: 'The gateway cannot use its store.',
    setting: 'REDIS_URL',
    remedy:
      'check that Redis runs and can be reached from the gateway (or that DATA_DIR has room).',
  },
  servers: {
    what: 'A required MCP server behind the gateway cannot be reached.',
    setting: 'POSTERN_CONFIG',
    remedy: "start the server; the gateway's log names it.",
  },
};

export async function checkHealth({
  readReadiness,
  listLacking,
}: Walk): Promise<readonly Finding[]> {
  const { status, json } = await readReadiness();
  if (!isObject(json?.checks)) {
    return [
      unknown(CHECK, 'whether the gateway is ready: /health/ready cannot be read from outside.', {
        why: 'Or it is not a Postern gateway: then the settings that are named below are not its own.',
      }),
    ];
  }
  const lacking = await listLacking();
  if (lacking.length === 0) {
    const { version } = json ?? {};
    return status === 200
      ? [ok(CHECK, `The gateway is ready (version ${String(version)}).`)]
      : [failure(CHECK, 'The gateway is shutting down.')];
  }
  return lacking.map((name) => {
    const { what, ...advice } = LACKS[name] ?? { what: `The gateway lacks ${name}.` };
    return failure(`${CHECK}.${name}`, what, advice);
  });
}
