// §19.4: the one table of how clients are told of the gateway.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  ALL_CLIENT_SETUPS,
  CLIENT_SETUPS,
  type ClientSetup,
} from '../../../src/pages/client-setups.ts';

const ENTRY = { name: 'postern', url: 'https://mcp.example.com/tools/mcp' };

function requireSetup(id: string): ClientSetup {
  const setup = CLIENT_SETUPS.find((one) => one.id === id);
  if (setup === undefined) throw new Error(`There is no ${id}`);
  return setup;
}

describe('what clients are given', () => {
  test.each(ALL_CLIENT_SETUPS)('§19.4 $title: the address of the gateway', (setup) => {
    const text = setup.render(ENTRY);
    expect(text).toContain(ENTRY.url);
    if (setup.language === 'json') expect(() => JSON.parse(text)).not.toThrow();
  });

  test('§19.4 each has an id of its own', () => {
    const ids = ALL_CLIENT_SETUPS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('§19.4 Cursor’s link holds name and configuration, as Cursor reads them', () => {
    const link = new URL(requireSetup('cursor').link?.(ENTRY) ?? '');
    expect(link.protocol).toBe('cursor:');
    expect(link.searchParams.get('name')).toBe('postern');
    const config = Buffer.from(link.searchParams.get('config') ?? '', 'base64').toString();
    expect(JSON.parse(config)).toEqual({ url: ENTRY.url });
  });

  test('§19.4 VS Code’s link holds what `code --add-mcp` takes', () => {
    const link = requireSetup('vscode').link?.(ENTRY) ?? '';
    expect(link).toMatch(/^vscode:mcp\/install\?[^"{ ]+$/);
    expect(JSON.parse(decodeURIComponent(link.split('?')[1] ?? ''))).toEqual({
      name: 'postern',
      type: 'http',
      url: ENTRY.url,
    });
  });

  test('§19.4 the documentation has no command or file of these but those of the table', () => {
    const entry = { name: 'postern', url: 'https://a.example/mcp' };
    const known = ALL_CLIENT_SETUPS.flatMap(({ render, instead }) =>
      [render, instead?.render ?? render].map((one) =>
        one(entry).replaceAll('https://a.example', '{base_url}'),
      ),
    );
    for (const name of ['clients.md', 'connect.md']) {
      const page = readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');
      const blocks = [...page.matchAll(/^```\w+\n([\s\S]*?)\n```$/gm)].map(([, text = '']) => text);
      const added = blocks.filter((text) => / mcp add |"mcpServers"|"servers"/.test(text));
      const others = added.filter((text) => !known.includes(text) && !text.includes('"headers"'));
      expect(others, name).toEqual([]);
    }
  });
});
