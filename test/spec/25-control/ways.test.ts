// §25 to §27: whatever holds something back, nothing passes by any way: one table of (control × way), in both eras.
import { expect, test } from 'vitest';
import { CONTROLS } from '../../support/control/controls.ts';
import {
  type EraClient,
  openSessionEra,
  openStatelessEra,
} from '../../support/control/era-clients.ts';
import { type Speaking, startSpeakingGateway } from '../../support/control/speaking-gateway.ts';
import { type Era, WAYS, type Way } from '../../support/control/ways.ts';
import { CLIENT_MARK, SERVER_MARK } from '../../support/guards/speaking-server.ts';

const OPEN: Readonly<Record<Era, typeof openSessionEra>> = {
  session: openSessionEra,
  stateless: openStatelessEra,
};

/** What came through: nothing where it was held. */
async function goBy(
  way: Way,
  client: EraClient,
  { heard }: Speaking,
  isOfAnswers = false,
): Promise<readonly string[]> {
  const before = heard().length;
  const told = await way.go(client);
  const sent = heard().slice(before);
  return [
    ...(told.includes(SERVER_MARK) || (!isOfAnswers && way.isAccepted?.(told) === true)
      ? [`the client was told ${told}`]
      : []),
    ...(!isOfAnswers && sent.includes(CLIENT_MARK) ? [`a server heard ${sent}`] : []),
  ];
}

test.each(CONTROLS)('§25 nothing passes $title, in either era', async (control) => {
  const speaking = await startSpeakingGateway(control);
  const [all, searched] = control.paths ?? ['/mcp', '/mcp/searched'];
  const answered = control.answer && { answer: control.answer };
  const passed: string[] = [];
  const held: string[] = [];
  for (const era of ['session', 'stateless'] as const) {
    const clients = {
      all: await OPEN[era](speaking.gateway, { path: all, ...answered }),
      searched: await OPEN[era](speaking.gateway, { path: searched, ...answered }),
    };
    // Lists are there before what depends on them.
    for (const { ask } of Object.values(clients)) await ask('tools/list');
    for (const way of WAYS.filter(({ eras }) => eras.includes(era))) {
      const client = way.isSearched ? clients.searched : clients.all;
      const found = await goBy(way, client, speaking, control.isOfAnswers);
      if (control.holds(way)) passed.push(...found.map((what) => `${era}: ${way.title}: ${what}`));
      // Else the way would prove nothing.
      else if (found.length === 0) held.push(`${era}: ${way.title}`);
    }
  }
  expect(passed).toEqual([]);
  if (control.title === 'nothing') expect(held).toEqual([]);
});
