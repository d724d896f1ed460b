// `postern notify --test`: sends a test notification to the webhook of the configuration file.
import { systemClock } from '../platform/clock.ts';
import { openOutboundNetwork } from '../platform/outbound/outbound-network.ts';
import { createMessage, sendToWebhook } from '../telemetry/notify/notify.ts';
import { prepareEnvironment } from './command-line/env-file.ts';
import { CommandError, UsageError } from './command-line/errors.ts';
import type { Flags, Invocation, Texts } from './command-line/invocation.ts';
import { loadOutbound, readConfiguration } from './setup/read-setup.ts';

/** @throws CommandError, ConfigError, UsageError */
export async function notify(
  options: Texts<'config'> & Flags<'test'>,
  { process, console }: Invocation,
): Promise<void> {
  if (!options.test)
    throw new UsageError('Add --test: the gateway itself sends all other notifications.');
  prepareEnvironment(options, process.env);
  const { path, file } = await readConfiguration('notify', process.env);
  if (file.notify === undefined)
    throw new CommandError(
      `${path} has no "notify". Add the webhook, for example:`,
      '"notify": { "url": "https://hooks.example.com/postern" }',
    );
  const now = systemClock.now();
  const message = createMessage(
    { type: 'test', text: 'This is a test of Postern.', data: {} },
    now,
  );
  const network = openOutboundNetwork({ outbound: loadOutbound(process.env) });
  const problem = await sendToWebhook(network.fetch, file.notify, message, now).finally(() =>
    network.close(),
  );
  if (problem !== undefined) throw new CommandError('The notification was not sent:', problem);
  console.log('The webhook has accepted the notification.');
}
