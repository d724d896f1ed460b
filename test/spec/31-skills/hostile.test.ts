// §31.3: what costs a moment whatever clients and servers write.
import { expect, test } from 'vitest';
import {
  type CatalogGateway,
  startForTest as start,
} from '../../support/upstreams/catalog-gateway.ts';
import { buildSkill, serveSkills } from '../../support/upstreams/skill-server.ts';

const NOTES = buildSkill('notes', { files: { 'more/of/it.md': 'More' } });

/** Milliseconds in which nothing else was done while `run` went on. */
async function measureBlocked(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  }, 5);
  await run();
  longest = Math.max(longest, performance.now() - last);
  clearInterval(timer);
  return longest;
}

async function ask(gateway: CatalogGateway, method: string, params: object) {
  const { json } = await gateway.call(await gateway.open(), method, params);
  return json.error ?? json.result;
}

test('§31.3 a URI of a hundred thousand folders is unknown at once', async () => {
  const one = await serveSkills('one', [NOTES]);
  const gateway = await start({ file: { mcpServers: { one: one.url } } });
  await gateway.list('skills/list');
  const uri = `skill://${'/'.repeat(100_000)}`;
  for (const method of ['resources/directory/read', 'resources/read', 'skills/get']) {
    const blocked = await measureBlocked(async () => {
      expect(await ask(gateway, method, { uri })).toMatchObject({ code: expect.any(Number) });
    });
    expect([method, blocked < 1_000]).toEqual([method, true]);
  }
});

test('§31.3 a skill that lies in more folders than people make is hidden, however many there are', async () => {
  const deep = (index: number) => {
    const uri = `skill://${index}${'/a'.repeat(2_000)}/x/SKILL.md`;
    const frontmatter = { name: 'x', description: 'x' };
    return { uri, frontmatter, resources: 'dynamic' };
  };
  const skills = Array.from({ length: 1_000 }, (_, index) => deep(index));
  const one = await serveSkills('one', [], {
    listing: {
      answers: { 'skills/list': () => ({ result: { skills: [NOTES.entry, ...skills] } }) },
    },
  });
  const gateway = await start({ file: { mcpServers: { one: one.url } } });
  const blocked = await measureBlocked(async () => {
    expect((await gateway.listNames('skills/list')).length).toBe(1);
  });
  expect(blocked).toBeLessThan(1_500);
});
