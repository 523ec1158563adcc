#include <map>
#include <string>
#include "store.hpp"

#define LIMIT 100

namespace parts {

using Name = std::string;

enum class State { Empty, Full };

/// One part on a shelf.
struct Part {
    Name name;
    int count = 0;
};

/// Keeps parts by name.
template <typename T>
class Store : public Shelf {
public:
    explicit Store(Source &source) : source_(source) {}
    virtual ~Store();

    // Adds one part.
    void add(const T &part);
    State state() const {
        return parts_.size() >= LIMIT ? State::Full : State::Empty;
    }
    bool operator==(const Store &other) const;

private:
    Source &source_;
    std::map<Name, T> parts_;
};

template <typename T>
void Store<T>::add(const T &part)
{
    parts_[part.name] = part;
    log(part.name);
}

static void log(const Name &name)
{
    std::puts(name.c_str());
}

}  // namespace parts

int Reader::read(int count)
{
    auto store = parts::Store<parts::Part>(*this);
    store.add(next());
    return count;
}

int main()
{
    return Reader().read(1);
}
