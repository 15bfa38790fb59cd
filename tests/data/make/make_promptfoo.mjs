// Make the promptfoo golden logs with the promptfoo installed in the folder given.
//
// Usage: node make_promptfoo.mjs FOLDER_WITH_NODE_MODULES
//
// Two made-up models answer from tables; nothing is asked over the network. The models fail one
// test each with an error, and the tests run twice (--repeat 2).

import { execFileSync } from 'node:child_process';
import { mkdtempSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const data = resolve(dirname(fileURLToPath(import.meta.url)), '..', 'promptfoo');
const installed = resolve(process.argv[2]);
const work = mkdtempSync(join(tmpdir(), 'promptfoo-'));

const capitals = { France: 'Paris', Italy: 'Rome', Japan: 'Tokyo', Kenya: 'Nairobi', Peru: 'Lima', Chad: "N'Djamena" };
const wrong = { before: { Peru: 'Cusco' }, after: { Japan: 'Kyoto', Kenya: 'nairobi!' } };
const broken = { before: 'Chad', after: 'France' };

writeFileSync(
  join(work, 'provider.cjs'),
  `const capitals = ${JSON.stringify(capitals)};
const wrong = ${JSON.stringify(wrong)};
const broken = ${JSON.stringify(broken)};
module.exports = class {
  constructor(options) { this.side = options.config.side; this.label = options.label; }
  id() { return 'table:' + this.side; }
  async callApi(prompt, context) {
    const { country } = context.vars;
    if (country === broken[this.side]) return { error: 'the model did not answer' };
    return { output: wrong[this.side][country] || capitals[country] };
  }
};
`,
);

for (const side of ['before', 'after']) {
  const config = {
    description: 'capitals',
    prompts: [
      { raw: 'What is the capital of {{country}}?', label: 'plain' },
      { raw: 'Name the capital of {{country}} in one word.', label: 'short' },
    ],
    providers: [
      { id: 'file://provider.cjs', label: `tiny-${side}`, config: { side, temperature: side === 'before' ? 0 : 0.5 } },
    ],
    tests: Object.entries(capitals).map(([country, capital]) => ({
      vars: { country },
      assert: [
        { type: 'icontains', value: capital, metric: 'names it' },
        { type: 'regex', value: "^[A-Za-z']+$", metric: 'one word' },
      ],
    })),
  };
  writeFileSync(join(work, `${side}.json`), JSON.stringify(config));
  for (const [name, options] of [['results.json', ['--repeat', '2']], ['results.jsonl', []]]) {
    try {
      execFileSync(
        process.execPath,
        [join(installed, 'node_modules/promptfoo/dist/src/entrypoint.js'), 'eval', '-c', `${side}.json`,
          '-o', `${side}-${name}`, '--no-cache', '--no-table', '--no-progress-bar', '--no-share', '-j', '1', ...options],
        {
          cwd: work,
          stdio: 'inherit',
          env: {
            ...process.env, PROMPTFOO_CONFIG_DIR: join(work, 'state'), PROMPTFOO_DISABLE_TELEMETRY: '1',
            PROMPTFOO_DISABLE_UPDATE: '1', PROMPTFOO_DISABLE_REMOTE_GENERATION: '1',
          },
        },
      );
    } catch (error) {
      if (error.status !== 100) throw error; // 100: some tests failed, as they should
    }
    mkdirSync(join(data, side), { recursive: true });
    const text = readFileSync(join(work, `${side}-${name}`), 'utf8');
    if (text.includes(work)) throw new Error(`${side}-${name} holds a path of this machine`);
    const target = name === 'results.json' ? join(data, side, name) : join(data, `${side}.jsonl`);
    writeFileSync(target, slim(text));
  }
}

// To keep the files small the token counts, all zero here, are left out and the indent is dropped.
function slim(text) {
  const lines = text.startsWith('{\n') ? [text] : text.trimEnd().split('\n');
  const without = (key, value) => (key === 'tokenUsage' || key === 'tokensUsed' ? undefined : value);
  return lines.map((line) => JSON.stringify(JSON.parse(line), without)).join('\n') + '\n';
}
