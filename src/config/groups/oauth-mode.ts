// OAUTH_MODE, which decides the defaults of many other settings.
import { oneOf } from '../rules.ts';
import { type Default, defineSetting, type Read } from '../setting.ts';

export type OAuthMode = 'proxy' | 'broker';

export const mode = defineSetting('OAUTH_MODE', oneOf('proxy', 'broker'), {
  default: { value: 'proxy' },
  summary: 'How clients log in: `broker` (recommended) or `proxy`.',
  details:
    'With `broker` the gateway is an issuer of its own, and the provider knows one redirect URI, `<BASE_URL>/oauth/callback`. With `proxy` clients are sent to the provider, which must know the redirect URI of each. See [Modes](modes.md).',
});

export const isBrokerMode = (read: Read): boolean => read(mode) === 'broker';

/** A default that differs between the modes. */
export const chooseByMode = <const T>(
  values: Readonly<Record<OAuthMode, T>>,
  write: (value: T) => string = String,
): Default<T> => ({
  compute: (read) => values[read(mode)],
  text: `\`${write(values.proxy)}\``,
  exceptions: [[`\`${write(values.broker)}\``, 'in broker mode']],
});
