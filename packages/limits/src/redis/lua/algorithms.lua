-- Every algorithm is a table of functions over a state `s`:
--   open(s, p, value)       reads the state of s.key into s; p are the parameters, value is the state if it is a string
--   fit(s, cost)            how many calls of this cost are admitted now
--   charge(s, units, id), refund(s, units, id)
--   level(s)                how much is used, for the answer
--   reset(s), retry(s, cost)  in milliseconds
--   save(s)                 writes what changed, with its expiry
-- It also has: parameters (how many), named (its calls carry request ids), keepsStrings (its states are strings).
local algorithms = {}

-- The parameters of an algorithm, from ARGV[first] on.
local function parametersOf(algorithm, first)
  local p = {}
  for index = 1, algorithm.parameters do p[index] = tonumber(ARGV[first + index - 1]) end
  return p
end

-- Opens the limit whose keys begin at KEYS[index]: its state, and its block if that is not part of the state.
-- `values` are the values of KEYS. The state of a blocked key is left alone. Returns the index after its keys.
local function openLimit(s, algorithm, p, index, values)
  s.key = KEYS[index]
  if algorithm.keepsStrings then
    local state = takeBlock(s, s.key, values[index])
    if s.blocked == 0 then algorithm.open(s, p, state) end
    return index + 1
  end
  takeBlock(s, KEYS[index + 1], values[index + 1])
  if s.blocked == 0 then algorithm.open(s, p) end
  return index + 2
end
